/** A ring of bands in one GPU Worker, asked by a test as a crew's member asks it. Bundled by `sims.mjs`. */

import { Engines, initSync } from "../../sdk/generated/brain/brain.js";
import { streamAll } from "../../sdk/src/workers/crews.js";
import { Lane } from "../../sdk/src/workers/lane.js";
import type { BrainJob, FromSim, SimAnswer, SimCommand, UnitFailure } from "../../sdk/src/workers/messages.js";

class Failed extends Error {
  constructor(readonly failure: UnitFailure) {
    super(failure.message);
  }
}

const JOB = 1;
const EPOCH = 1;

export interface Plan {
  /** Rows of each member, in order. */
  bands: { start: number; len: number }[];
  steps: number;
  /** Edges are computed apart and first. */
  apart?: boolean;
  /** The first state, if not the kernel's own, and after which step it is. */
  from?: { step: number; kept: (SimCommand & { do: "open" })["kept"] };
  /** Each member makes a wrong step before this one and takes it back. */
  backAt?: number;
  /** Pokes, each over one step. */
  pokes?: ({ step: number } & NonNullable<(SimCommand & { do: "step" })["poke"]>)[];
  keep?: true;
  show?: true;
}

export interface Found {
  finals: { inline?: number[]; hash?: string }[];
  kept: { hash: string; size: number }[];
  audition: { cells: number; took: number };
}

export type Run = (info: BrainJob, plan: Plan) => Promise<Found | { failure: UnitFailure }>;

export async function open(base: string): Promise<Run> {
  const hashing = await WebAssembly.compileStreaming(fetch(`${base}/assets/brain_bg.wasm`));
  let info: BrainJob | undefined;
  const waiting: { crew: number; settle: (said: FromSim) => void }[] = [];
  initSync({ module: hashing });
  const lane = new Lane({
    engines: new Engines(true),
    worker: `${base}/assets/gpu-worker.js`,
    wasm: `${base}/assets/gpu_bg.wasm`,
    base,
    hashing,
    session: () => "session",
    info: () => info,
    onDone: () => undefined,
    onFailed: () => undefined,
    onHealth: () => undefined,
    onNeed: () => Promise.resolve(),
    onSeek: streamAll,
    onSim: (said) => {
      const at = waiting.findIndex(({ crew }) => crew === said.crew);
      waiting.splice(at, 1)[0]?.settle(said);
    },
  });
  lane.limit(1);
  const heard = (crew: number) => new Promise<FromSim>((settle) => waiting.push({ crew, settle }));

  async function ask<Is extends SimAnswer["is"]>(crew: number, is: Is, command: SimCommand) {
    const answer = heard(crew);
    lane.sim({ type: "sim", crew, command }, JOB, []);
    const said = await answer;
    if (said.type !== "simmed") throw new Error("another answer");
    if (said.answer.is === "failed") throw new Failed(said.answer.failure);
    if (said.answer.is !== is) throw new Error(`${said.answer.is} instead of ${is}`);
    return said.answer as SimAnswer & { is: Is };
  }

  async function run(crews: number[], plan: Plan): Promise<Found> {
    const heardAudition = heard(0);
    lane.sim({ type: "audition", crew: 0, job: JOB }, JOB, []);
    const audition = await heardAudition;
    if (audition.type !== "auditioned" || "failure" in audition.heard) throw new Failed(audition.type === "auditioned" && "failure" in audition.heard ? audition.heard.failure : { kind: "internal", message: "another answer" });
    const { step: from, kept: stored } = plan.from ?? { step: 0, kept: [] };
    const all = <T>(act: (crew: number) => Promise<T>) => Promise.all(crews.map(act));
    let edges = await all((crew) => {
      const rows = plan.bands[crew - 1] ?? { start: 0, len: 0 };
      return ask(crew, "edges", { do: "open", epoch: EPOCH, job: JOB, ...rows, step: from, kept: stored, apart: plan.apart ?? false });
    });
    for (let step = from; step < plan.steps; step++) {
      const makeStep = (crew: number, isWrong: boolean) => {
        const at = crew - 1;
        const above = edges[(at + edges.length - 1) % edges.length]?.bottom.slice() ?? new Uint8Array();
        const below = edges[(at + 1) % edges.length]?.top.slice() ?? new Uint8Array();
        if (isWrong) above.fill(0);
        const command: SimCommand = { do: "step", epoch: EPOCH, step, above, below };
        const poke = plan.pokes?.find((poke) => poke.step === step);
        if (poke) command.poke = poke;
        return ask(crew, "edges", command);
      };
      if (plan.backAt === step) {
        await all((crew) => makeStep(crew, true));
        for (const crew of crews) lane.sim({ type: "sim", crew, command: { do: "back", epoch: EPOCH } }, JOB, []);
      }
      edges = await all((crew) => makeStep(crew, false));
    }
    const { steps: step } = plan;
    if (plan.show) await all((crew) => ask(crew, "shown", { do: "show", epoch: EPOCH, step }));
    const kept = plan.keep ? await all((crew) => ask(crew, "kept", { do: "keep", epoch: EPOCH, step })) : [];
    const finals = await all((crew) => ask(crew, "final", { do: "finish", epoch: EPOCH, attempt: crew }));
    return {
      finals: finals.map(({ result }) =>
        "inline" in result ? { inline: Array.from(result.inline) } : { hash: result.hash },
      ),
      kept: kept.map(({ hash, size }) => ({ hash, size })),
      audition: audition.heard,
    };
  }

  return async (job, plan) => {
    info = job;
    const crews = plan.bands.map((_, at) => at + 1);
    try {
      return await run(crews, plan);
    } catch (error) {
      if (error instanceof Failed) return { failure: error.failure };
      throw error;
    } finally {
      waiting.length = 0;
      for (const crew of crews) lane.sim({ type: "leave", crew }, JOB, []);
      lane.forget(JOB);
    }
  };
}
