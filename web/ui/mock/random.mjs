// Randomness that is the same at every start, so that two screenshots can be compared.
export function seeded(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

// noise is a smooth value between -1 and 1 of a name at a time.
export function noise(name, t) {
  let h = 2166136261
  for (const c of name) h = Math.imul(h ^ c.charCodeAt(0), 16777619)
  const a = (h & 1023) / 163
  return 0.5 * Math.sin(t / 67 + a) + 0.3 * Math.sin(t / 23 + a * 2.3) + 0.2 * Math.sin(t / 7.1 + a * 5.1)
}
