type Said<T> = {[name in keyof T]?: Exclude<T[name], '' | 0 | false | null>}

// said leaves out what is empty.
export function said<T extends object>(members: T): Said<T> {
  const full = Object.entries(members).filter(([, value]) => (typeof value === 'object' && value ? Object.keys(value).length > 0 : value))
  return Object.fromEntries(full) as Said<T>
}
