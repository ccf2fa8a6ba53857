// All that is looked at in a real browser. Build first. With BASE_URL only what a running system can show;
// with TOPSAIL, the program, also what pages of other sites can do.
import {flows} from './flows.mjs'
import {origins} from './origins.mjs'
import {pages} from './pages.mjs'
import {speed} from './speed.mjs'
import {states} from './states.mjs'
import {trying} from './trying.mjs'

const running = process.env.TOPSAIL ? [flows, origins] : [flows]
for (const part of process.env.BASE_URL ? running : [flows, states, trying, pages, speed]) {
  console.log(`${part.name}:`)
  await part()
}
