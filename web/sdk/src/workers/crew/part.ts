/** One node's part in one crew: a member with its timer, its radio, and its band on the GPU or its parts of a model. */

import type { Crew, CrewLink, CrewOutput, StageProgress } from "../../../generated/crew/crew.js";
import type { CrewNote } from "../../join/crew.js";
import { Call } from "../radio.js";
import type { SimAnswer, StageAnswer } from "../messages.js";
import type { CrewHost } from "./host.js";

export class Part {
  private readonly calls = new Map<number, Call>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly todo: CrewOutput[] = [];
  private performing = false;
  private step = 0;
  private links: CrewLink[] = [];
  /** Of parts of a service. */
  private stage: StageProgress | undefined;
  private isStage = false;
  /** Dismissed, or broken. */
  isOver = false;

  constructor(
    private readonly host: CrewHost,
    /** A frame for the relay. */
    private readonly sendFrame: (frame: Uint8Array<ArrayBuffer>) => void,
    /** This node's number. */
    readonly me: number,
    readonly crew: number,
    private readonly job: number | undefined,
    private readonly name: string,
    private readonly member: Crew,
    /** Whether the donor is shown it. */
    private readonly isShown = true,
  ) {}

  /** Gives the member one input, and does all it wants then. */
  give(input: (member: Crew, now: number) => CrewOutput[]): void {
    if (this.isOver) return;
    try {
      this.todo.push(...input(this.member, performance.now()));
      if (!this.performing) this.perform();
    } catch (error) {
      this.broke(error);
    }
  }

  answer(answer: SimAnswer): void {
    const { epoch } = answer;
    this.give((member, now) => {
      switch (answer.is) {
        case "edges":
          return member.edges(now, epoch, answer.step, answer.top, answer.bottom, answer.took);
        case "kept":
          return member.kept(now, epoch, answer.step, answer.hash, answer.size);
        case "final": {
          const { result } = answer;
          return "inline" in result
            ? member.finalInline(now, epoch, result.inline)
            : member.finalStored(now, epoch, result.hash, result.size);
        }
        case "reduced":
          return member.reduced(now, epoch, answer.step, answer.rows);
        case "shown":
          return member.shown(now, epoch);
        case "failed":
          return member.failed(now, epoch, answer.failure);
      }
    });
  }

  staged(answer: StageAnswer): void {
    const { epoch } = answer;
    this.give((member, now) => {
      switch (answer.is) {
        case "loaded":
          return member.stageLoaded(now, epoch);
        case "made":
          return member.stageMade(now, epoch, answer.call, answer.output, answer.took);
        case "notMade":
          return member.stageNotMade(now, epoch, answer.call, answer.failure);
        case "failed":
          return member.stageFailed(now, epoch, answer.failure);
      }
    });
  }

  /** Who is in the crew, by rank. */
  members(): number[] {
    return this.isOver ? [] : (this.member.place()?.members ?? []);
  }

  note(): CrewNote | undefined {
    const place = this.isOver || !this.isShown ? undefined : this.member.place();
    if (!place) return undefined;
    const { rank, members, rows } = place;
    const { crew, job, name, step, links } = this;
    const note: CrewNote = { crew, name, members: members.length, rank, step, links };
    if (job !== undefined) note.job = job;
    if (rows && this.isStage) note.parts = rows;
    else if (rows) note.rows = rows;
    if (this.stage) note.stage = this.stage;
    return note;
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    for (const call of this.calls.values()) call.hang();
    this.calls.clear();
    if (this.job !== undefined && this.isStage) this.host.askModels({ type: "unstage", crew: this.crew }, this.job, []);
    else if (this.job !== undefined) this.host.askGpu({ type: "leave", crew: this.crew }, this.job, []);
    this.member.free();
  }

  /** Acts on outputs in order, also when acting on one leads to more. */
  private perform(): void {
    this.performing = true;
    try {
      for (let output = this.todo.shift(); output && !this.isOver; output = this.todo.shift()) this.act(output);
    } finally {
      this.performing = false;
    }
    this.wind();
  }

  private act(output: CrewOutput): void {
    switch (output.type) {
      case "frame":
        this.sendFrame(output.bytes);
        break;
      case "direct":
        this.calls.get(output.peer)?.send(output.bytes);
        break;
      case "radio":
        this.radio(output);
        break;
      case "engine": {
        const { command } = output;
        const transfer = command.do === "step" ? [command.above.buffer, command.below.buffer] : [];
        const ask = { type: "sim", crew: this.crew, command } as const;
        if (this.job !== undefined) this.host.askGpu(ask, this.job, transfer);
        break;
      }
      case "stage": {
        const { command } = output;
        this.isStage = true;
        const transfer = command.do === "run" ? [command.input.buffer] : [];
        const ask = { type: "stage", crew: this.crew, command } as const;
        if (this.job !== undefined) this.host.askModels(ask, this.job, transfer);
        break;
      }
      case "answer":
        this.host.tellBrain((brain, now) => brain.crewAnswers(now, this.crew, output.call, output.result));
        break;
      case "part": {
        const { call, at, bytes, last } = output;
        this.host.tellBrain((brain, now) => brain.crewPart(now, this.crew, call, at, bytes, last));
        break;
      }
      case "says": {
        const { progress, staged, epoch, bytes } = output;
        if (progress) ({ step: this.step, links: this.links } = progress);
        if (staged) this.stage = staged;
        this.host.tellBrain((brain, now) => brain.crewSays(now, this.crew, epoch, bytes));
        break;
      }
      case "deliver":
        this.host.send(output.bytes);
        break;
      case "using":
      case "app":
      case "refused":
        // A page that lends has no talk; its links are shown with the progress.
        this.host.talked?.(this.crew, output);
        break;
      case "notBegun":
      case "done":
        // Of common operations, which nobody begins here.
        break;
    }
  }

  private radio(output: CrewOutput & { type: "radio" }): void {
    const { peer } = output;
    if (output.do === "hear") {
      this.calls.get(peer)?.words(output.words);
      return;
    }
    this.calls.get(peer)?.hang();
    this.calls.delete(peer);
    if (output.do === "hang") return;
    const ice = this.member.place()?.ice ?? [];
    const tell = this.host.askRadio.bind(this.host);
    const call = new Call(tell, { do: output.do, ice }, {
      words: (words) => this.give((member, now) => member.radio(now, peer, words)),
      up: () => this.give((member, now) => member.directUp(now, peer)),
      down: () => this.give((member, now) => member.directDown(now, peer)),
      frame: (bytes) => this.give((member, now) => member.direct(now, peer, bytes)),
    });
    this.calls.set(peer, call);
  }

  private wind(): void {
    clearTimeout(this.timer);
    if (this.isOver) return;
    const due = this.member.nextTimeout();
    if (due === undefined) return;
    const wait = Math.max(0, due - performance.now());
    this.timer = setTimeout(() => this.give((member, now) => member.tick(now)), wait);
  }

  /** A member of which half was done is of no use: the crew goes on without it. */
  private broke(error: unknown): void {
    console.error(error);
    const epoch = this.epoch();
    this.close();
    const failure = { kind: "internal", message: `the member broke: ${String(error)}` } as const;
    this.host.tellBrain((brain, now) => brain.crewFailed(now, this.crew, epoch, failure));
  }

  private epoch(): number {
    return this.member.place()?.epoch ?? 0;
  }
}
