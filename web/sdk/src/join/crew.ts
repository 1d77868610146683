/** Crews this device is in, for the donor's eyes. */

export interface CrewNote {
  crew: number;
  /** The simulation or service; left out where an application talks. */
  job?: number;
  name: string;
  members: number;
  rank: number;
  /** Its band: the first row, and how many. */
  rows?: { start: number; len: number };
  /** Its parts of a model: the first one, and how many. */
  parts?: { start: number; len: number };
  /** Steps done here, or requests. */
  step: number;
  /** How its parts of a model do. */
  stage?: StageNote;
  links: LinkNote[];
}

/** Sums over the requests that went through this device since the crew was formed; times in milliseconds. */
export interface StageNote {
  done: number;
  /** Requests that are here now. */
  held: number;
  computed: number;
  /** Time without a request. */
  waited: number;
  /** Handed on to the next device: how often, and how many bytes. */
  passed: number;
  bytes: number;
  travelled: number;
}

export interface LinkNote {
  /** The other's number in the pool. */
  peer: number;
  via: "relay" | "direct";
  roundTripMs: number;
  /** Megabytes a second, known while the link was full lately. */
  mbps?: number;
}
