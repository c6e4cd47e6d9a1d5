// In place of the server: questions go to a worker on this page, which runs the network.

const LINES = /^\/api\/(attack|breaking|activate)$/; // answered in lines, with progress before
const { worker: source, data } = globalThis.gammacapsPage;

const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
worker.postMessage({ data });
delete globalThis.gammacapsPage;

const asked = new Map(); // what to call with each message, by the question's number
let count = 0;
worker.onmessage = ({ data: said }) => asked.get(said.id)?.(said);
worker.onerror = (event) => {
  for (const [id, tell] of asked) tell({ id, error: `The page's network has stopped (${event.message}): reload the page.` });
};

export async function transport(path, { body, signal } = {}) {
  signal?.throwIfAborted();
  const style = document.querySelector(`style[data-file="${path.split("/").at(-1)}"]`);
  if (style) return new Response(style.textContent);
  const id = ++count;
  const lines = new ReadableStream({
    start(stream) {
      const write = (line) => stream.enqueue(new TextEncoder().encode(line));
      const leave = () => {
        asked.delete(id);
        worker.postMessage({ id, leave: true });
        stream.error(signal.reason);
      };
      signal?.addEventListener("abort", leave);
      asked.set(id, ({ done, of, answer, error }) => {
        if (of) return write(`${JSON.stringify({ done, of })}\n`);
        asked.delete(id);
        signal?.removeEventListener("abort", leave);
        write(error ? `${JSON.stringify({ error })}\n` : LINES.test(path) ? `{"answer":${answer}}\n` : answer);
        stream.close();
      });
    },
  });
  worker.postMessage({ id, path, body: body && JSON.parse(body) });
  if (LINES.test(path)) return new Response(lines);
  const whole = await new Response(lines).text();
  return new Response(whole, { status: whole.startsWith('{"error"') ? 500 : 200 });
}
