// Clock is the present, second by second, for what says how long ago something was.
export class Clock {
  now = $state(Date.now())

  run(): () => void {
    const timer = setInterval(() => (this.now = Date.now()), 1000)
    return () => clearInterval(timer)
  }
}
