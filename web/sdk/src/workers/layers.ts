/** Layers of language models that crews keep ready: some for each crew this node is in. */

import { type Layers, Loader } from "../../generated/llm/llm.js";
import type { LlmWork } from "../../generated/brain/brain.js";
import { UnitError } from "./blobs.js";
import { asFailure, say } from "./engine.js";
import type { Guard } from "./guard.js";
import type { BrainJob, StageAnswer, StageCommand, ToStage } from "./messages.js";
import { heard } from "./turns.js";

type Jobs = (job: number) => BrainJob | undefined;
type Load = StageCommand & { do: "load" };
type Turn = StageCommand & { do: "turn" };
/** Gives a loader all it wants, and says whether it is still wanted. */
type Fill = (job: number, work: LlmWork, loader: Loader, isWanted: () => boolean) => Promise<boolean>;

/** What a crew has here. */
interface Place {
  /** Commands are done one after the other. */
  line: Promise<void>;
  epoch: number;
  /** Which parts of which job's model are loaded. */
  loaded: string;
  layers?: Layers;
}

export class LayersOfCrews {
  private readonly places = new Map<number, Place>();

  constructor(
    private readonly guard: Guard,
    private readonly fill: Fill,
  ) {}

  hear(ask: ToStage, jobs: Jobs): void {
    if (ask.type === "unstage") return this.leave(ask.crew);
    const { crew, command } = ask;
    const place = this.places.get(crew) ?? { line: Promise.resolve(), epoch: 0, loaded: "" };
    this.places.set(crew, place);
    place.line = place.line.then(() => this.perform(crew, place, command, jobs));
  }

  private async perform(crew: number, place: Place, command: StageCommand, jobs: Jobs): Promise<void> {
    const { epoch } = command;
    try {
      if (command.do === "load") return await this.load(crew, place, command, jobs);
      if (command.do === "turn") return await this.turn(crew, place, command);
      if (command.do === "drop") return place.layers?.forget(command.call);
      throw new UnitError({ kind: "internal", message: "texts go round and round" });
    } catch (error) {
      this.answer(crew, { is: "failed", epoch, failure: asFailure(error) });
    }
  }

  private async load(crew: number, place: Place, { epoch, job, start, len }: Load, jobs: Jobs): Promise<void> {
    place.epoch = epoch;
    const wanted = `${job}/${start}+${len}`;
    if (place.loaded === wanted) {
      place.layers?.clear();
    } else {
      place.layers?.free();
      delete place.layers;
      place.loaded = "";
      const work = workOf(job, jobs);
      const loader = this.guard.whole("opened the model", () => Loader.part(work.bytes, start, len));
      if (!(await this.fill(job, work, loader, () => this.places.get(crew) === place))) return;
      place.layers = this.guard.whole("loaded the model", () => loader.finishPart());
      place.loaded = wanted;
    }
    this.answer(crew, { is: "loaded", epoch });
  }

  private async turn(crew: number, place: Place, { epoch, items }: Turn): Promise<void> {
    // Hears what came meanwhile.
    await heard();
    const { layers } = place;
    // The member of that epoch is gone: nobody waits for an answer.
    if (!layers || epoch !== place.epoch) return;
    const began = performance.now();
    const made = this.guard.whole("computed", () => layers.turn(items)) as Uint8Array<ArrayBuffer>;
    const took = performance.now() - began;
    this.answer(crew, { is: "turned", epoch, made, took, usual: layers.usual }, [made.buffer]);
  }

  private answer(crew: number, answer: StageAnswer, transfer: Transferable[] = []): void {
    say(this.guard.isBroken ? { type: "staged", crew, answer, fatal: true } : { type: "staged", crew, answer }, transfer);
  }

  private leave(crew: number): void {
    const place = this.places.get(crew);
    this.places.delete(crew);
    void place?.line.then(() => place.layers?.free());
  }
}

function workOf(job: number, jobs: Jobs): LlmWork {
  const work = jobs(job)?.work;
  if (work?.kind === "llm" && "model" in work) return work;
  throw new UnitError({ kind: "internal", message: `job ${job} is no language model known here` });
}
