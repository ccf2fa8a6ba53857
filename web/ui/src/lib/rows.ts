// Which rows of a long table are drawn.

export interface Rows {
  from: number
  to: number // not included
  above: number // pixels of the rows that are left out
  below: number
}

const overscan = 8

// visible are the rows in view with some on either side, so that scrolling finds them drawn.
export function visible(total: number, rowHeight: number, scrollTop: number, viewHeight: number): Rows {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - overscan)
  const from = Math.min(first, Math.max(0, total - 1))
  const to = Math.min(total, Math.ceil((scrollTop + viewHeight) / rowHeight) + overscan)
  return {from, to: Math.max(from, to), above: from * rowHeight, below: Math.max(0, total - Math.max(from, to)) * rowHeight}
}
