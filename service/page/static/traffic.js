// What requests bring beside text and lengths: sessions that they are turns of, adapters that they name, images, videos and
// recordings in their prompts, hidden tokens and grammars of their replies.
import { field, figure, h, number, percent, select, words } from "./dom.js";

export const TRAFFIC = {
  turns: "", turns_p95: "", user_mean: "", user_p95: "", think: "", system: "", tenants: "", document: "", documents: "", routing: "sticky", routed: "", host: "", disk: "", disk_rate: "",
  adapters: "", rank: "", slots: "", images: "", width: "", height: "", ids: "",
  video: "", video_s: "", video_fps: "", video_width: "", video_height: "", audio: "", audio_s: "", thinking_mean: "", thinking_p95: "", structured: "", prefix: "",
};
export const TRAFFIC_PLACES = {
  "/traffic/sessions": "turns", "/traffic/sessions/turns": "turns", "/traffic/sessions/turns/p95": "turns_p95",
  "/traffic/sessions/user_tokens": "user_mean", "/traffic/sessions/user_tokens/p95": "user_p95", "/traffic/sessions/think_time_s": "think",
  "/traffic/sessions/system_prompt_tokens": "system", "/traffic/sessions/system_prompts": "tenants", "/traffic/sessions/document_tokens": "document",
  "/traffic/sessions/documents": "documents", "/traffic/sessions/routing": "routing", "/traffic/sessions/replicas": "routed",
  "/host_cache_gib": "host", "/engine/host_cache_gib": "host", "/disk_cache_gib": "disk", "/engine/disk_cache_gib": "disk",
  "/disk_read_gbytes_per_s": "disk_rate", "/engine/disk_read_gbytes_per_s": "disk_rate",
  "/adapters": "adapters", "/adapters/count": "adapters", "/adapters/rank": "rank", "/adapters/slots": "slots",
  "/traffic/images": "images", "/traffic/images/per_request": "images", "/traffic/images/width_px": "width", "/traffic/images/height_px": "height", "/traffic/token_ids_fraction": "ids",
  "/traffic/video": "video_s", "/traffic/video/per_request": "video", "/traffic/video/seconds": "video_s", "/traffic/video/frames_per_s": "video_fps",
  "/traffic/video/width_px": "video_width", "/traffic/video/height_px": "video_height", "/traffic/audio": "audio_s", "/traffic/audio/per_request": "audio", "/traffic/audio/seconds": "audio_s",
  "/traffic/thinking_tokens": "thinking_mean", "/traffic/thinking_tokens/mean": "thinking_mean", "/traffic/thinking_tokens/tokens": "thinking_mean", "/traffic/thinking_tokens/p95": "thinking_p95",
  "/traffic/structured_fraction": "structured", "/traffic/shared_prefix_fraction": "prefix",
};
const ROUTINGS = [["sticky", "a session stays where it began"], ["random", "any replica"], ["least_loaded", "where fewest are in progress"], ["prefix_aware", "where fewest prompt tokens are left"]];

const isSaid = (text) => number(text) !== undefined;
/** A mean and a 95th percentile as the API takes them; all alike without the latter. */
export const lengths = (mean, p95) => (number(p95) === undefined || number(p95) === number(mean)
  ? { distribution: "fixed", tokens: Math.round(Number(mean)) } : { distribution: "lognormal", mean: Number(mean), p95: Number(p95) });
/** Lengths that two inputs can show. */
export const plain = (stated) => !stated || ["fixed", "lognormal"].includes(stated.distribution);
/** A distribution as the values of two inputs. */
export const shown = (stated) => [stated?.mean ?? stated?.tokens ?? "", stated?.p95 ?? ""];

const hasSessions = (v) => ["turns", "user_mean", "think"].some((name) => isSaid(v[name]));

/** Prompts, or the sessions that they follow from, on top of what was stated of them before. */
export function promptsOf(v, kept) {
  if (!hasSessions(v)) return { prompt_tokens: lengths(v.prompt_mean, v.prompt_p95), ...(kept?.sessions ? { sessions: null } : {}) };
  const sessions = {
    ...kept?.sessions, turns: lengths(v.turns, v.turns_p95), user_tokens: lengths(v.user_mean, v.user_p95), think_time_s: number(v.think),
    system_prompt_tokens: number(v.system) ?? 0, system_prompts: number(v.tenants) ?? 1,
    document_tokens: number(v.document) ?? 0, documents: number(v.documents) ?? 1, routing: v.routing, replicas: v.routing === "sticky" ? null : number(v.routed) ?? null,
  };
  return { prompt_tokens: null, sessions, ...(kept ? { shared_prefix_fraction: 0 } : {}) };
}

/** Host memory under the cache, and a disk under that, for each device. */
export const hostCacheOf = (v) => ({
  ...(isSaid(v.host) ? { host_cache_gib: number(v.host) } : {}), ...(isSaid(v.disk) ? { disk_cache_gib: number(v.disk) } : {}),
  ...(isSaid(v.disk_rate) ? { disk_read_gbytes_per_s: number(v.disk_rate) } : {}),
});

/** Each kind of media by its field: its inputs, and what they state. */
const MEDIA = {
  images: [["images", "width", "height"], (v) => ({ per_request: number(v.images) ?? 1, width_px: number(v.width), height_px: number(v.height) })],
  video: [["video", "video_s", "video_fps", "video_width", "video_height"], (v) => ({
    per_request: number(v.video) ?? 1, seconds: number(v.video_s), frames_per_s: number(v.video_fps), width_px: number(v.video_width), height_px: number(v.video_height) })],
  audio: [["audio", "audio_s"], (v) => ({ per_request: number(v.audio) ?? 1, seconds: number(v.audio_s) })],
};
const SHARES = { token_ids_fraction: "ids", structured_fraction: "structured", shared_prefix_fraction: "prefix" };

/** Media, hidden tokens and shares that are stated; what a request stated before and the inputs do not is taken back. */
export function broughtOf(v, kept) {
  const found = {};
  for (const [name, [inputs, stated]] of Object.entries(MEDIA)) {
    if (inputs.some((input) => isSaid(v[input]))) found[name] = stated(v);
    else if (kept?.[name]) found[name] = null;
  }
  if (isSaid(v.thinking_mean) || isSaid(v.thinking_p95)) found.thinking_tokens = lengths(v.thinking_mean, v.thinking_p95);
  else if (kept?.thinking_tokens) found.thinking_tokens = null;
  for (const [name, input] of Object.entries(SHARES)) {
    if (isSaid(v[input])) found[name] = number(v[input]);
    else if (kept?.[name]) found[name] = 0;
  }
  return found;
}

export function adaptersOf(v, kept) {
  if (![v.adapters, v.rank, v.slots].some(isSaid)) return kept?.adapters ? { adapters: null } : {};
  const { rank: _rank, ...others } = kept?.adapters ?? {};
  return { adapters: { ...others, count: number(v.adapters), ...(isSaid(v.rank) ? { rank: number(v.rank) } : {}), slots: number(v.slots) ?? null } };
}

const several = (count) => (count > 1 ? count : "");

/** Values of the inputs for what a workload or an estimate states; null where it states more than they show. */
export function valuesOfTraffic({ traffic, adapters, host_cache_gib: beside, disk_cache_gib: under, disk_read_gbytes_per_s: rate, engine }) {
  const { sessions, images, video, audio, thinking_tokens: thinking, prompt_tokens: prompt } = traffic;
  if (sessions ? !plain(sessions.turns) || !plain(sessions.user_tokens) : !plain(prompt)) return null;
  if (!plain(thinking) || adapters?.shares || Array.isArray(adapters?.rank) || beside?.length > 1) return null;
  const [turns, turns_p95] = sessions ? shown(sessions.turns) : ["", ""], [user_mean, user_p95] = sessions ? shown(sessions.user_tokens) : ["", ""];
  const [thinking_mean, thinking_p95] = shown(thinking);
  const [prompt_mean, prompt_p95] = sessions ? ["", ""] : shown(prompt);
  return {
    ...TRAFFIC, prompt_mean, prompt_p95, turns, turns_p95, user_mean, user_p95, think: sessions?.think_time_s ?? "", system: sessions?.system_prompt_tokens || "",
    tenants: several(sessions?.system_prompts), document: sessions?.document_tokens || "", documents: several(sessions?.documents),
    routing: sessions?.routing ?? "sticky", routed: sessions?.replicas ?? "", host: (beside?.[0] ?? beside) || engine?.host_cache_gib || "", disk: under || engine?.disk_cache_gib || "", disk_rate: rate ?? engine?.disk_read_gbytes_per_s ?? "",
    adapters: adapters?.count ?? "", rank: adapters?.rank ?? "", slots: adapters?.slots ?? "",
    images: images?.per_request ?? "", width: images?.width_px ?? "", height: images?.height_px ?? "", ids: traffic.token_ids_fraction || "",
    video: several(video?.per_request), video_s: video?.seconds ?? "", video_fps: video?.frames_per_s ?? "", video_width: video?.width_px ?? "", video_height: video?.height_px ?? "",
    audio: several(audio?.per_request), audio_s: audio?.seconds ?? "", thinking_mean, thinking_p95, structured: traffic.structured_fraction || "", prefix: traffic.shared_prefix_fraction || "",
  };
}

/** The inputs. num(name, attributes): one for a number, which keeps v[name]. form(): where the prompts' own inputs are. */
export function trafficFields(v, num, form) {
  const names = Object.keys(TRAFFIC).filter((name) => name !== "routing");
  /** Prompts follow from sessions: their own inputs rest while there are any. */
  const rest = () => { for (const name of ["prompt_mean", "prompt_p95"]) { const input = form()?.querySelector(`#in-${name}`); if (input) input.disabled = hasSessions(v); } };
  const node = h("details", { open: names.some((name) => isSaid(v[name])), oninput: rest }, h("summary", {}, "Sessions, adapters, images, hidden tokens"),
    h("div.pair", {}, field("Turns of a session", num("turns"), "instead of prompts, which follow"), field("Turns p95", num("turns_p95"), "or all alike")),
    h("div.pair", {}, field("User tokens a turn", num("user_mean"), "the output is the reply"), field("User tokens p95", num("user_p95"), "or all alike")),
    h("div.pair", {}, field("Think time, s", num("think"), "from a reply to the next turn"), field("System prompt", num("system", { placeholder: "0" }), "tokens; every session begins with it")),
    h("div.pair", {}, field("Different system prompts", num("tenants", { placeholder: "1" }), "of tenants, say"), field("Host memory for caches, GiB", num("host", { placeholder: "0" }), "beside each device")),
    h("div.pair", {}, field("Disk under it, GiB", num("disk", { placeholder: "0" }), "for each device"), field("Read at, GB/s", num("disk_rate"), "each device's share, as measured")),
    h("div.pair", {}, field("Document", num("document", { placeholder: "0" }), "tokens, after the system prompt"), field("Different documents", num("documents", { placeholder: "1" }), "each session is about one")),
    h("div.pair", {}, field("Turns go to", select(ROUTINGS, v.routing, { id: "in-routing", name: "routing", onchange: (e) => { v.routing = e.target.value; } })),
      field("Among replicas", num("routed", { placeholder: "the plan's" }), "where sessions are spread")),
    h("div.pair", {}, field("Adapters", num("adapters"), "LoRA, over one base"), field("Rank", num("rank", { placeholder: "16" }))),
    field("Adapters on a device", num("slots", { placeholder: "all" }), "others are loaded as they are named"),
    h("div.pair", {}, field("Images a request", num("images")), field("Width, pixels", num("width"))),
    h("div.pair", {}, field("Height, pixels", num("height")), field("Items sent as token ids", num("ids", { placeholder: "0" }), "a share; of models that embed")),
    h("div.pair", {}, field("Video, s", num("video_s"), "of each"), field("Frames a second", num("video_fps"), "as sampled")),
    h("div.pair", {}, field("Video width, pixels", num("video_width")), field("Video height, pixels", num("video_height"))),
    h("div.pair", {}, field("Videos a request", num("video", { placeholder: "1" })), field("Recording, s", num("audio_s"), "of each")),
    h("div.pair", {}, field("Recordings a request", num("audio", { placeholder: "1" })), field("Already in the cache", num("prefix", { placeholder: "0" }), "a share of every prompt")),
    h("div.pair", {}, field("Hidden tokens mean", num("thinking_mean"), "before a reply is shown"), field("Hidden tokens p95", num("thinking_p95"), "or all alike")),
    field("Replies held to a grammar", num("structured", { placeholder: "0" }), "a share; JSON by a schema, calls of tools"));
  queueMicrotask(rest);
  return node;
}

/** What a line or an estimate says of sessions: how much of prompts is found, among how many replicas. */
export function foundFacts(predicted) {
  if (predicted?.prefix_hit_fraction === null || predicted?.prefix_hit_fraction === undefined) return [];
  return [
    ["prompts found in the cache", percent(predicted.prefix_hit_fraction, 1)],
    ["turns of a session go to", predicted.routed_over > 1 ? `${predicted.routed_over} replicas` : "one replica"],
  ];
}

/** What an estimate says of adapters and images. */
export function broughtFacts({ adapters, images }) {
  return [
    adapters ? ["adapters on a device", `${adapters.slots} of rank ${adapters.rank}, ${figure(adapters.gib_on_device)} GiB`] : null,
    adapters ? ["different ones in a batch", figure(adapters.different_in_batch)] : null,
    adapters ? ["found on the device", percent(adapters.resident_fraction)] : null,
    adapters?.load_ms ? ["loading one", `${figure(adapters.load_ms)} ms`] : null,
    images ? ["an image, video or recording is", `${figure(images.tokens_each)} tokens of ${figure(images.patches_each)} patches`] : null,
    images ? ["those of a request take", `${figure(images.encoding_ms)} ms of a device, ${figure(images.host_ms)} ms of its host`] : null,
  ].filter(Boolean);
}

const ranksText = (rank) => (Array.isArray(rank) ? `${Math.min(...rank)} to ${Math.max(...rank)}` : rank);

/** What a workload asked of its requests beside lengths, for a plan's line. */
export function askedFacts(workload) {
  const { adapters, traffic } = workload ?? {};
  return [
    adapters ? ["adapters", `${adapters.count} of rank ${ranksText(adapters.rank)}${adapters.slots ? `, ${adapters.slots} on a device at once` : ", all on every device"}`] : null,
    traffic?.images ? ["images a request", `${traffic.images.per_request} of ${traffic.images.width_px} × ${traffic.images.height_px}`] : null,
    traffic?.video ? ["videos a request", `${traffic.video.per_request} of ${figure(traffic.video.seconds)} s at ${figure(traffic.video.frames_per_s)} frames/s, ${traffic.video.width_px} × ${traffic.video.height_px}`] : null,
    traffic?.audio ? ["recordings a request", `${traffic.audio.per_request} of ${figure(traffic.audio.seconds)} s`] : null,
    traffic?.thinking_tokens ? ["hidden tokens", figure(shown(traffic.thinking_tokens)[0])] : null,
    traffic?.structured_fraction ? ["held to a grammar", percent(traffic.structured_fraction)] : null,
    traffic?.sessions ? ["sessions are routed", words(traffic.sessions.routing)] : null,
  ].filter(Boolean);
}
