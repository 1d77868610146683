/** What devices keep ready for requests: models, programs, or slices of a model. */

import type { Service } from "@shoal/sdk";

/** What a device keeps, in words; none if it keeps nothing. */
export function keptWords(services: readonly Service[], node: number): string {
  return services.flatMap((service) => kept(service, node)).join(", ");
}

function kept({ name, replicas, crew }: Service, node: number): string[] {
  const whole = replicas.find((replica) => replica.node === node);
  if (whole) return [whole.ready ? name : `${name} (loading)`];
  const stages = crew?.stages ?? [];
  const at = stages.findIndex((stage) => stage.node === node);
  if (at < 0) return [];
  const slice = `slice ${at + 1} of ${stages.length}`;
  return [`${name} (${stages[at]?.ready ? slice : `${slice}, loading`})`];
}
