// Talking to a browser that no library started.

/** The DevTools protocol over a pipe: JSON messages, each ended by a zero byte. */
export function talk(to, from) {
  const waiting = new Map();
  let count = 0;
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text) => {
    const messages = (rest + text).split("\0");
    rest = messages.pop();
    for (const { id, result, error } of messages.map((message) => JSON.parse(message))) {
      const settle = waiting.get(id);
      waiting.delete(id);
      if (error) settle?.reject(new Error(error.message));
      else settle?.resolve(result);
    }
  });
  to.on("error", () => undefined);
  return (method, params = {}, sessionId) =>
    new Promise((resolve, reject) => {
      const id = ++count;
      waiting.set(id, { resolve, reject });
      to.write(`${JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })}\0`);
    });
}
