/** Parts of models that crews keep ready: one stage for each crew this node is in. */

import { type Lent, Stage } from "../../generated/onnx/onnx.js";
import type { OnnxWork } from "../../generated/brain/brain.js";
import { type Blobs, UnitError } from "./blobs.js";
import { asFailure, say } from "./engine.js";
import type { BrainJob, StageAnswer, StageCommand, ToStage } from "./messages.js";
import { heard } from "./turns.js";

type Jobs = (job: number) => BrainJob | undefined;
type Load = StageCommand & { do: "load" };
type Run = StageCommand & { do: "run" };

/** What a crew has here. */
interface Place {
  /** Commands are done one after the other. */
  line: Promise<void>;
  epoch: number;
  /** Which parts of which job's model are loaded. */
  loaded: string;
  stage?: Stage;
  /** Requests nobody waits for. */
  dropped: Set<number>;
}

/** Runs something that may stop the module; `does` says what, in case it stops. */
export type Guard = <T>(does: string, compute: () => T) => T;

export class Stages {
  private readonly places = new Map<number, Place>();

  constructor(
    private readonly blobs: Blobs,
    private readonly lent: Lent,
    private readonly guard: Guard,
    private readonly isBroken: () => boolean,
  ) {}

  hear(ask: ToStage, jobs: Jobs): void {
    if (ask.type === "unstage") this.leave(ask.crew);
    else this.queue(ask.crew, ask.command, jobs);
  }

  private queue(crew: number, command: StageCommand, jobs: Jobs): void {
    const place = this.places.get(crew) ?? { line: Promise.resolve(), epoch: 0, loaded: "", dropped: new Set() };
    this.places.set(crew, place);
    if (command.do === "drop") return void place.dropped.add(command.call);
    place.line = place.line.then(() => {
      if (command.do === "load") return this.load(crew, place, command, jobs);
      if (command.do === "run") return this.run(crew, place, command);
      const message = "this engine has no parts of language models";
      return this.answer(crew, { is: "failed", epoch: command.epoch, failure: { kind: "internal", message } });
    });
  }

  private async load(crew: number, place: Place, { epoch, job, start, len }: Load, jobs: Jobs): Promise<void> {
    place.epoch = epoch;
    place.dropped.clear();
    try {
      const wanted = `${job}/${start}+${len}`;
      if (place.loaded !== wanted) {
        place.stage?.free();
        delete place.stage;
        place.loaded = "";
        const { bytes, parts } = workOf(job, jobs);
        const files = await Promise.all(parts.slice(start, start + len).map((part) => this.blobs.all(part)));
        // Left meanwhile.
        if (this.places.get(crew) !== place) return;
        place.stage = this.guard("loaded a part of the model", () => Stage.load(files, bytes, start, len, this.lent));
        place.loaded = wanted;
      }
      this.answer(crew, { is: "loaded", epoch });
    } catch (error) {
      this.answer(crew, { is: "failed", epoch, failure: asFailure(error) });
    }
  }

  private async run(crew: number, place: Place, { epoch, call, input }: Run): Promise<void> {
    // Hears what came meanwhile: whoever hung up is not computed for.
    await heard();
    const { stage } = place;
    try {
      if (place.dropped.delete(call)) throw new UnitError({ kind: "lost", message: "nobody waits for this request any more" });
      if (!stage || epoch !== place.epoch) throw new UnitError({ kind: "lost", message: "these parts are not loaded any more" });
      const began = performance.now();
      const output = this.guard("ran a part of the model", () => stage.run(input)) as Uint8Array<ArrayBuffer>;
      this.answer(crew, { is: "made", epoch, call, output, took: performance.now() - began }, [output.buffer]);
    } catch (error) {
      this.answer(crew, { is: "notMade", epoch, call, failure: asFailure(error) });
    }
  }

  private answer(crew: number, answer: StageAnswer, transfer: Transferable[] = []): void {
    say(this.isBroken() ? { type: "staged", crew, answer, fatal: true } : { type: "staged", crew, answer }, transfer);
  }

  private leave(crew: number): void {
    const place = this.places.get(crew);
    this.places.delete(crew);
    void place?.line.then(() => place.stage?.free());
  }
}

function workOf(job: number, jobs: Jobs): OnnxWork {
  const work = jobs(job)?.work;
  if (work && "parts" in work) return work;
  throw new UnitError({ kind: "internal", message: `job ${job} is no model known here` });
}
