// How good an app is: alarms are raised by the same bounds.

export const promise = 0.99 // of the answers are predictions within the SLO
const half = 0.5

export function tone(attainment: number): 'ok' | 'warn' | 'failed' {
  return attainment >= promise ? 'ok' : attainment >= half ? 'warn' : 'failed'
}

// missed is the tone of a share of defaults; undefined where it is within the promise.
export function missed(defaults: number): 'warn' | 'failed' | undefined {
  const is = tone(1 - defaults)
  return is === 'ok' ? undefined : is
}
