export type Sortable = string | number | boolean | null | undefined

// compare orders as people expect: numbers by size, names with numbers by these, and
// what is unknown last.
export function compare(a: Sortable, b: Sortable): number {
  const noA = a === null || a === undefined || a === ''
  const noB = b === null || b === undefined || b === ''
  if (noA || noB) return Number(noA) - Number(noB)
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return collator.compare(String(a), String(b))
}

const collator = new Intl.Collator('en', {numeric: true, sensitivity: 'base'})

// sorted is a copy in order. What is unknown stays last in either direction.
export function sorted<T>(items: readonly T[], by: (item: T) => Sortable, descending: boolean): T[] {
  const keyed = items.map((item) => ({item, key: by(item)}))
  keyed.sort((a, b) => {
    const missing = Number(a.key === null || a.key === undefined) - Number(b.key === null || b.key === undefined)
    if (missing !== 0) return missing
    return descending ? compare(b.key, a.key) : compare(a.key, b.key)
  })
  return keyed.map(({item}) => item)
}
