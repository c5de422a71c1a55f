// How the page talks to /v1: the same public routes as every other client, and nothing else.

const TOKEN = "clusterwright-token";
let asking = null;

export const token = () => sessionStorage.getItem(TOKEN);

/** A problem document (RFC 9457), or what came instead of one. */
export class Problem extends Error {
  constructor(document, status) {
    super(document.detail || document.title || `HTTP ${status}`);
    this.document = document;
    this.status = status;
    this.errors = document.errors ?? [];
  }
}

/** The last requests made, newest first: what "copy as curl" copies. */
export function curlOf(method, path, body, headers = {}) {
  const quote = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const parts = ["curl -sS", method === "GET" ? "" : `-X ${method}`, quote(location.origin + path)];
  if (token()) parts.push('-H "Authorization: Bearer $CLUSTERWRIGHT_TOKEN"');
  for (const [name, value] of Object.entries(headers)) parts.push("-H", quote(`${name}: ${value}`));
  if (body !== undefined) parts.push("-H", quote("Content-Type: application/json"), "-d", quote(JSON.stringify(body)));
  return parts.filter(Boolean).join(" ");
}

/** fetch with the token; asks for one, and tries again, where the service wants one. */
async function send(method, path, { body, headers = {}, signal } = {}) {
  for (;;) {
    const sent = { ...headers };
    const used = token();
    if (used) sent.Authorization = `Bearer ${used}`;
    if (body !== undefined) sent["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { method, headers: sent, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem({ title: "No answer", detail: "The service cannot be reached. Is it still running?" }, 0);
    }
    if (response.status !== 401) return response;
    if (token() === used && !(await askToken(Boolean(used)))) return response;
  }
}

export async function call(method, path, options = {}) {
  const response = await send(method, path, options);
  const text = await response.text();
  let document = null;
  try { document = text ? JSON.parse(text) : null; } catch { document = null; }
  if (!response.ok) throw new Problem(document ?? { title: `HTTP ${response.status}`, detail: text.slice(0, 500) }, response.status);
  return document;
}

export const get = (path, parameters, options) => call("GET", path + query(parameters), options);
export const post = (path, body, options = {}) => call("POST", path, { ...options, body });

export function query(parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Every entry of a list, page after page, at most so many. */
export async function pages(path, parameters = {}, most = 2000) {
  const items = [];
  let next = null;
  do {
    const page = await get(path, { ...parameters, limit: 500, next });
    items.push(...page.items);
    next = page.next;
  } while (next && items.length < most);
  return items;
}

const remembered = new Map();
/** Ids of a list of the catalog, read once a visit. */
export function known(noun) {
  if (!remembered.has(noun)) {
    const reading = pages(`/v1/${noun}`);
    reading.catch(() => remembered.delete(noun));
    remembered.set(noun, reading);
  }
  return remembered.get(noun);
}
export const knownIds = (noun) => known(noun).then((items) => items.map((item) => item.id));

/**
 * A job's server-sent events as they come, to its end. EventSource cannot send a token, so the stream is read here;
 * a broken connection goes on after the last event seen.
 */
export async function followJob(id, onEvent, signal) {
  let last = null;
  for (;;) {
    const response = await send("GET", `/v1/jobs/${id}/events`, { headers: last ? { "Last-Event-ID": last } : {}, signal });
    if (response.status === 204) return;
    if (!response.ok) throw new Problem(await response.json(), response.status);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        buffer += value;
        const blocks = buffer.split("\n\n");
        buffer = blocks.pop();
        for (const block of blocks) {
          const part = (name) => block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
          if (part("id")) last = part("id");
          if (part("event")) onEvent(part("event"), JSON.parse(part("data")));
        }
      }
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** Opens the token dialog; resolves to whether a token was entered. */
export function askToken(isWrong) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("token-dialog");
    const input = document.getElementById("token-value");
    document.getElementById("token-title").textContent = isWrong ? "That token was not accepted" : "This service needs a token";
    input.value = token() ?? "";
    let entered = false;
    document.getElementById("token-form").onsubmit = () => {
      entered = input.value.trim() !== "";
      if (entered) sessionStorage.setItem(TOKEN, input.value.trim());
    };
    document.getElementById("token-forget").onclick = () => { sessionStorage.removeItem(TOKEN); dialog.close(); };
    document.getElementById("token-cancel").onclick = () => dialog.close();
    dialog.onclose = () => { asking = null; resolve(entered); };
    dialog.showModal();
  });
  return asking;
}
