/** What only a page may know: whether it is seen, how much battery is left, and what bytes cost. */

interface Battery extends EventTarget {
  readonly charging: boolean;
  /** From 0 to 1. */
  readonly level: number;
}

interface Connection extends EventTarget {
  readonly saveData?: boolean;
  readonly type?: string;
}

export interface Circumstances {
  hidden: boolean;
  /** The browser stops this page. Its Workers often hear of it only afterwards, so what counts is hiding before. */
  frozen: boolean;
  /** `undefined` if the browser does not tell. */
  battery: { percent: number; charging: boolean } | undefined;
  /** On a mobile network, or the person asked to save data. */
  metered: boolean;
}

export interface Watching {
  now: Circumstances;
  stop: () => void;
}

/** Calls `onChange` in the very event that tells of a change: a page that hides may not run much longer. */
export async function watchCircumstances(onChange: (now: Circumstances) => void): Promise<Watching> {
  const watching = new AbortController();
  const { signal } = watching;
  const { connection } = navigator as Navigator & { connection?: Connection };
  const now: Circumstances = {
    hidden: document.hidden,
    frozen: false,
    battery: undefined,
    metered: isMetered(connection),
  };
  const on = (target: EventTarget, event: string, change: () => Partial<Circumstances>) =>
    target.addEventListener(event, () => onChange(Object.assign(now, change())), { signal });
  on(document, "visibilitychange", () => ({ hidden: document.hidden }));
  on(document, "freeze", () => ({ frozen: true }));
  on(document, "resume", () => ({ frozen: false }));
  // Left, or kept aside in case the person comes back.
  on(window, "pagehide", () => ({ frozen: true }));
  on(window, "pageshow", () => ({ frozen: false }));
  if (connection) on(connection, "change", () => ({ metered: isMetered(connection) }));
  const battery = await findBattery();
  if (battery) {
    now.battery = charge(battery);
    on(battery, "chargingchange", () => ({ battery: charge(battery) }));
    on(battery, "levelchange", () => ({ battery: charge(battery) }));
  }
  return { now, stop: () => watching.abort() };
}

function isMetered(connection: Connection | undefined): boolean {
  return connection?.saveData === true || connection?.type === "cellular";
}

function charge({ level, charging }: Battery): { percent: number; charging: boolean } {
  return { percent: Math.round(level * 100), charging };
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
