/** What a node gives its crews. */

import type { Brain, BrainJob, BrainOutput } from "../../../generated/brain/brain.js";
import type { CrewOutput } from "../../../generated/crew/crew.js";
import type { CrewNote } from "../../join/crew.js";
import type { Lanes } from "../lanes.js";
import type { FromBrain, ToSim, ToStage } from "../messages.js";
import type { RadioCall } from "../radio-words.js";
import type { Socket } from "../socket.js";

export interface CrewHost {
  /** Tells the brain something, and acts on what it answers. */
  tellBrain(tell: (brain: Brain, now: number) => BrainOutput[]): void;
  /** This node's number, and its coordinator's key, while joined. */
  joined(): { me: number; coordinator: string } | undefined;
  job(job: number): BrainJob | undefined;
  /** A frame for the relay. Dropped where too much waits already: its link says it again. */
  sendFrame(bytes: Uint8Array<ArrayBuffer>): void;
  /** A message for the coordinator. */
  send(bytes: Uint8Array): void;
  /** To the GPU Worker. */
  askGpu(ask: ToSim, job: number, transfer: Transferable[]): void;
  /** To the models' Worker. */
  askModels(ask: ToStage, job: number, transfer: Transferable[]): void;
  /** To the page's radio; without one there are no direct ways. */
  askRadio(call: RadioCall, transfer: Transferable[]): void;
  /** What the page shows. */
  show(crews: CrewNote[]): void;
  /** Where blobs come from; without it none are exchanged. */
  pool?: Pool;
  /** Of talk, which only applications have. */
  talked?(crew: number, output: TalkOutput): void;
}

export interface Pool {
  /** The coordinator's address. */
  base: string;
  session: () => string;
  /** The brain's code, for its hash function. */
  hashing: WebAssembly.Module;
  /** The code of the Worker that keeps pieces. */
  keepWorker: string;
}

export type TalkOutput = Extract<CrewOutput, { type: "using" | "app" | "refused" }>;

interface Doing {
  perform: (outputs: BrainOutput[]) => void;
  info: (job: number) => BrainJob | undefined;
  /** To the page. */
  tell: (message: FromBrain, transfer?: Transferable[]) => void;
  pool: Pool;
}

export function hostOf(brain: Brain, socket: Socket, lanes: Lanes, { perform, info, tell, pool }: Doing): CrewHost {
  return {
    tellBrain: (tell) => perform(tell(brain, performance.now())),
    joined: () => {
      const { node: me, coordinator } = brain.status();
      return me === undefined || coordinator === undefined ? undefined : { me, coordinator };
    },
    job: info,
    pool,
    sendFrame: (bytes) => socket.sendFrame(bytes),
    send: (bytes) => socket.send(bytes),
    askGpu: (ask, job, transfer) => lanes.gpu.sim(ask, job, transfer),
    askModels: (ask, job, transfer) => lanes.stage(ask, job, transfer),
    askRadio: (call, transfer) => tell(call, transfer),
    show: (crews) => tell({ type: "crews", crews }),
  };
}
