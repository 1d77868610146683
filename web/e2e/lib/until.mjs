// Waiting for conditions, never for time to pass.

/** Thrown by whoever is asked: no further asking can help. */
export class Hopeless extends Error {}

/** Asks until the answer is neither undefined, null nor false; says what was waited for if it never is. */
export async function until(what, ask, seconds = 60) {
  const deadline = Date.now() + seconds * 1000;
  let last;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== null && answer !== false) return answer;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      last = error;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited ${seconds} s in vain for ${what}`, { cause: last });
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
