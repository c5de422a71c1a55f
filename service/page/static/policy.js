// The buying policy in words.
import { words } from "./dom.js";

/** The rules about who may sell, in words. */
export function policyText(policy) {
  if (!policy || policy === "any") return "anything that anybody sells";
  const most = [["max_providers", "seller"], ["max_regions", "region"], ["max_device_types", "kind of device"]].filter(([name]) => policy[name] !== null).map(([name, noun]) => `${policy[name]} ${noun}${policy[name] === 1 ? "" : "s"}`);
  return [
    policy.provider_classes ? `sold by a ${policy.provider_classes.map(words).join(" or ")}` : null,
    policy.min_price_confidence && policy.min_price_confidence !== "low" ? `at prices of ${policy.min_price_confidence} confidence or better` : null,
    policy.device_classes ? `${policy.device_classes.map(words).join(" or ")} devices` : null,
    policy.named_place ? "in a region that says where it is" : null,
    most.length ? `for each workload at most ${most.join(", ")}` : null,
  ].filter(Boolean).join("; ") || "anything that anybody sells";
}
