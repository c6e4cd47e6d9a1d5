// Questions to the server. Whatever goes wrong ends as a Failure with a sentence for people.

import { transport } from "./transport.js";

export class Failure extends Error {}

const GONE = "The server does not answer. Is gammacaps explore still running?";

async function answered(path, options) {
  for (let attempt = 0; ; attempt++) {
    let response;
    try {
      response = await transport(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failure(GONE);
    }
    if (response.ok) return response;
    if (response.status === 503 && attempt < 4) {
      await new Promise((go) => setTimeout(go, 300 * 2 ** attempt));
      options.signal?.throwIfAborted();
      continue;
    }
    const said = await response.json().catch(() => ({}));
    throw new Failure(said.error ?? GONE);
  }
}

export async function get(path, signal) {
  return (await answered(path, { signal })).json();
}

export async function text(path) {
  return (await answered(path, {})).text();
}

function posted(body, signal) {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal };
}

export async function post(path, body, signal) {
  return (await answered(path, posted(body, signal))).json();
}

// Reads lines of JSON as they come: progress(done, of), and at the end the answer.
export async function follow(path, body, signal, progress) {
  const response = await answered(path, posted(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const said = JSON.parse(line);
        if (said.error) throw new Failure(said.error);
        if (said.answer) return said.answer;
        progress(said.done, said.of);
      }
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Failure) throw error;
  }
  signal?.throwIfAborted();
  throw new Failure(GONE);
}

// One question of a kind at a time: a new one makes the old one stale.
export class Latest {
  #controller = null;

  next() {
    this.#controller?.abort();
    this.#controller = new AbortController();
    return this.#controller.signal;
  }

  stop() {
    this.#controller?.abort();
  }
}
