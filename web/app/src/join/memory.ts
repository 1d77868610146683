/** How much of the device's memory a donor may lend. */

const GIB = 2 ** 30;
/** The slider moves by this much: a program of the usual size. */
export const STEP = GIB / 4;
/** Where the browser does not tell, in GiB: what small phones have is taken for granted, more may be lent. */
const UNKNOWN = 2;
const UNKNOWN_MOST = 8;

export interface DeviceMemory {
  /** What is lent if the donor says nothing. */
  usual: number;
  most: number;
  /** Whether the browser tells how much there is. */
  told: boolean;
}

/** `said` is `navigator.deviceMemory`, in GiB. */
export function memoryOf(said: number | undefined): DeviceMemory {
  const [has, most] = [said ?? UNKNOWN, said ?? UNKNOWN_MOST];
  return { usual: (has * GIB) / 2, most: Math.max(STEP, most * GIB), told: said !== undefined };
}

export function memoryWords(lent: number, { most, told }: DeviceMemory): string {
  const size = (bytes: number) => (bytes < GIB ? `${Math.round(bytes / 2 ** 20)} MiB` : `${bytes / GIB} GiB`);
  return told ? `at most ${size(lent)} of ${size(most)}` : `at most ${size(lent)}`;
}
