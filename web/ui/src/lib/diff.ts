// Differences between two objects, member by member.

export interface Difference {
  path: string
  before: string | null // null: it was not there
  after: string | null
}

type Json = unknown

// differences lists what is not the same, by path.
export function differences(before: Json, after: Json, prefix = ''): Difference[] {
  if (same(before, after)) return []
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return names.flatMap((name) => differences(before[name], after[name], prefix === '' ? name : `${prefix}.${name}`))
  }
  return [{path: prefix, before: text(before), after: text(after)}]
}

// same compares values as JSON, whatever the order of members.
export function same(a: Json, b: Json): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]))
  if (isObject(a) && isObject(b)) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)])
    return [...names].every((name) => same(a[name], b[name]))
  }
  return a === b
}

// rebased puts the changes from base to mine on top of theirs. Where both changed the
// same member, mine is taken.
export function rebased<T extends object>(base: T, mine: T, theirs: T): T {
  const result = {...theirs} as Record<string, Json>
  for (const name of new Set([...Object.keys(base), ...Object.keys(mine)])) {
    const was = (base as Record<string, Json>)[name]
    const is = (mine as Record<string, Json>)[name]
    if (same(was, is)) continue
    if (is === undefined) delete result[name]
    else result[name] = is
  }
  return result as T
}

function isObject(value: Json): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(value: Json): string | null {
  if (value === undefined || value === null) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}
