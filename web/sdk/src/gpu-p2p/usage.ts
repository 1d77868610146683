/** WebGPU's flags, by the numbers its specification gives them: TypeScript's library knows only their types. */

export const MAP_READ = 0x01;
export const MAP_WRITE = 0x02;
export const COPY_SRC = 0x04;
export const COPY_DST = 0x08;
export const STORAGE = 0x80;
/** For `mapAsync`. */
export const MODE_READ = 0x01;
/** For layouts. */
export const STAGE_COMPUTE = 0x04;
