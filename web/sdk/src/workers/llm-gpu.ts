/** The Worker for language models on the GPU. */

import init, { type GpuLanguage, GpuLoader } from "../../generated/llm-gpu/llm-gpu.js";
import { serve } from "./engine.js";
import { Guard } from "./guard.js";
import { LanguageComputer, type LanguageEngine } from "./languages.js";

const ENGINE: LanguageEngine<GpuLanguage, GpuLoader> = {
  alone: (size, context) => GpuLoader.alone(size, context),
  of: (work) => GpuLoader.of(work),
  finish: (loader) => loader.finish(),
  isLost: (language) => language.isLost,
};

const guard = new Guard(() => GpuLoader.panicked());

serve(
  async (blobs, wasm) => {
    await init({ module_or_path: wasm });
    return new LanguageComputer(blobs, guard, ENGINE);
  },
  () => guard.isBroken,
);
