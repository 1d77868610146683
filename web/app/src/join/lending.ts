/** The donor's side of joining: starts, changes and ends it, and tells the page how it goes. */

import type { JobNote, JoinHandle, JoinStatus, UnitEvent } from "@shoal/sdk";
import { join } from "@shoal/sdk";

import { memo, signal } from "../view/reactive";
import type { Choices } from "./kept";
import {
  clearHistory,
  loadChoices,
  loadHistory,
  loadRules,
  saveChoices,
  saveHistory,
  saveRules,
} from "./kept";
import type { Active, Entry } from "./ledger";
import { Ledger } from "./ledger";
import type { Signer } from "./rules";
import { decide, signers } from "./rules";

export type Stage = "off" | "starting" | "on";

export interface Lending {
  stage: () => Stage;
  status: () => JoinStatus | null;
  /** Why it ended, if not by the donor. */
  problem: () => string;
  choices: () => Choices;
  choose(change: Partial<Choices>): void;
  /** Everybody whose work ran here or whose key was named. */
  signers: () => readonly Signer[];
  decide(key: string, verdict: "only" | "never" | "free"): void;
  active: () => readonly Active[];
  history: () => readonly Entry[];
  forget(): void;
  start(): void;
  stop(): void;
  pause(rest: boolean): void;
}

/** The page is told at most this often, however short the units are. */
const REFRESH = 250;

export function openLending(token: string): Lending {
  const [stage, problem] = [signal<Stage>("off"), signal("")];
  const status = signal<JoinStatus | null>(null);
  const choices = signal(loadChoices());
  const rules = signal(loadRules());
  const active = signal<readonly Active[]>([]);
  let ledger = new Ledger(loadHistory());
  const history = signal<readonly Entry[]>(ledger.history());
  const known = memo(() => signers(rules(), history()));
  let handle: JoinHandle | null = null;
  let latest: JoinStatus | null = null;
  let stopAsked = false;
  let timer: ReturnType<typeof setInterval> | undefined;

  const show = () => {
    status.set(latest);
    active.set(ledger.active(Date.now()));
    history.set(ledger.history());
  };
  const save = () => saveHistory(ledger.history().reverse());
  addEventListener("pagehide", save);
  const ended = (reason: string | undefined) => {
    clearInterval(timer);
    handle = null;
    ledger.end();
    show();
    save();
    problem.set(reason ?? "");
    stage.set("off");
  };
  const begin = async () => {
    stage.set("starting");
    stopAsked = false;
    problem.set("");
    timer = setInterval(show, REFRESH);
    const onStatus = (next: JoinStatus) => (latest = next);
    const onUnit = (event: UnitEvent) => ledger.record(event, Date.now());
    const onRefused = (job: JobNote, why: string) => ledger.refuse(job, why, Date.now());
    try {
      const { only, never } = rules();
      const asked = { ...choices(), rules: { only, never } };
      handle = await join({ ...asked, url: location.origin, token, onStatus, onUnit, onRefused });
    } catch (error) {
      return ended(error instanceof Error ? error.message : String(error));
    }
    void handle.stopped.then(ended);
    if (stopAsked) handle.stop();
    else stage.set("on");
  };

  return {
    stage,
    status,
    problem,
    choices,
    choose: (change) => {
      choices.update((old) => ({ ...old, ...change }));
      saveChoices(choices());
      handle?.set(change);
    },
    signers: known,
    decide: (key, verdict) => {
      const note = known().find((signer) => signer.key === key)?.note ?? "";
      rules.update((old) => decide(old, key, verdict, note));
      saveRules(rules());
      const { only, never } = rules();
      handle?.setRules({ only, never });
    },
    active,
    history,
    forget: () => {
      clearHistory();
      if (!handle) ledger = new Ledger();
      history.set([]);
    },
    start: () => void (stage() === "off" && begin()),
    stop: () => {
      stopAsked = true;
      handle?.stop();
    },
    pause: (rest) => handle?.[rest ? "pause" : "resume"](),
  };
}
