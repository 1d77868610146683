// Winding up after a test. Node runs the hooks of `t.after` in the order they were given and stops at the first that throws; what
// the others would have ended then runs on and keeps the test's process alive for ever.

const stacks = new WeakMap();

/** Does this when the test is over: the latest first, each whatever becomes of the others. */
export function after(t, windUp) {
  const known = stacks.get(t);
  if (known) return void known.push(windUp);
  const stack = [windUp];
  stacks.set(t, stack);
  t.after(async () => {
    const faults = [];
    while (stack.length > 0) {
      try {
        await stack.pop()();
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length > 0) throw faults[0];
  });
}
