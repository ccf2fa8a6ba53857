// All that is looked at in a real browser. Build first. With BASE_URL only what a running system can show.
import {flows} from './flows.mjs'
import {pages} from './pages.mjs'
import {speed} from './speed.mjs'
import {states} from './states.mjs'

for (const part of process.env.BASE_URL ? [flows] : [flows, states, pages, speed]) {
  console.log(`${part.name}:`)
  await part()
}
