/** onnxruntime-web on a GPU, and on the processor for models that the GPU's part cannot run. */

import * as ort from "onnxruntime-web/jspi";
import { serveRuntime } from "./runtime/serve.js";

serveRuntime(ort, ["webgpu", "wasm"]);
