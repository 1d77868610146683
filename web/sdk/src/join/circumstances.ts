/** What only a page may know: whether it is seen, and whether the device is plugged in. */

interface Battery extends EventTarget {
  readonly charging: boolean;
}

export interface Circumstances {
  hidden: boolean;
  /** The browser is about to stop this page: hand back what was lent. */
  frozen: boolean;
  /** `undefined` if the browser does not tell. */
  pluggedIn: boolean | undefined;
}

/** Calls `onChange` whenever something changes. Answers with how things are and how to stop watching. */
export async function watchCircumstances(
  onChange: (now: Circumstances) => void,
): Promise<{ now: Circumstances; stop: () => void }> {
  const watching = new AbortController();
  const { signal } = watching;
  const now: Circumstances = { hidden: document.hidden, frozen: false, pluggedIn: undefined };
  const set = (change: Partial<Circumstances>) => {
    Object.assign(now, change);
    onChange(now);
  };
  document.addEventListener("visibilitychange", () => set({ hidden: document.hidden }), { signal });
  document.addEventListener("freeze", () => set({ frozen: true }), { signal });
  document.addEventListener("resume", () => set({ frozen: false }), { signal });
  const battery = await findBattery();
  if (battery) {
    now.pluggedIn = battery.charging;
    battery.addEventListener("chargingchange", () => set({ pluggedIn: battery.charging }), { signal });
  }
  return { now, stop: () => watching.abort() };
}

async function findBattery(): Promise<Battery | undefined> {
  const { getBattery } = navigator as Navigator & { getBattery?: () => Promise<Battery> };
  return getBattery?.call(navigator).catch(() => undefined);
}

/** Keeps a phone's screen on while it computes, because a dark phone stops its pages. */
export class Awake {
  private lock: Promise<WakeLockSentinel | undefined> | undefined;

  set(wanted: boolean): void {
    if (!("wakeLock" in navigator) || wanted === (this.lock !== undefined)) return;
    if (wanted) {
      this.lock = navigator.wakeLock.request("screen").catch(() => undefined);
      // The browser takes it away with the page out of sight; it is asked for again when seen.
      void this.lock.then((lock) => lock?.addEventListener("release", () => (this.lock = undefined)));
    } else {
      void this.lock?.then((lock) => lock?.release()).catch(() => undefined);
      this.lock = undefined;
    }
  }
}
