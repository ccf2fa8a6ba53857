import {createContext} from 'svelte'
import type {Clock} from './clock.svelte'
import type {Live} from './live.svelte'
import type {Notices} from './notices.svelte'
import type {Router} from './router.svelte'
import type {Session} from './session.svelte'
import type {Theme} from './theme.svelte'

// Desk is what every page has at hand.
export interface Desk {
  live: Live
  session: Session
  router: Router
  theme: Theme
  clock: Clock
  notices: Notices
}

export const [desk, setDesk] = createContext<Desk>()
