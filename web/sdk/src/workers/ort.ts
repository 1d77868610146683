/** onnxruntime-web on the processor. */

import * as ort from "onnxruntime-web/wasm";
import { serveRuntime } from "./runtime/serve.js";

serveRuntime(ort, ["wasm"]);
