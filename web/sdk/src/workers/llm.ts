/** The Worker for language models on processors. */

import init, { type Language, Loader } from "../../generated/llm/llm.js";
import { serve } from "./engine.js";
import { Guard } from "./guard.js";
import { LanguageComputer, type LanguageEngine } from "./languages.js";
import { LayersOfCrews } from "./layers.js";

const ENGINE: LanguageEngine<Language, Loader> = {
  alone: (size, context, memory) => Loader.alone(size, context, memory),
  of: (work) => Loader.of(work),
  finish: (loader) => loader.finish(),
};

const guard = new Guard(() => Loader.panicked());

serve(
  async (blobs, wasm) => {
    await init({ module_or_path: wasm });
    const computer = new LanguageComputer(blobs, guard, ENGINE);
    computer.stages = new LayersOfCrews(guard, (job, work, loader, isWanted) => computer.fill(job, work.model, loader, isWanted));
    return computer;
  },
  () => guard.isBroken,
);
