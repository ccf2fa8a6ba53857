import * as api from '../api/calls'
import {Refusal} from '../api/client'
import {roleValues, type Me, type Role} from '../api/schema'

const ranks: readonly Role[] = roleValues.filter((role) => role !== 'query') // who only queries may nothing here

// covers says whether a role may do what another may.
export function covers(role: Role, needed: Role): boolean {
  return role === needed || (ranks.includes(needed) && ranks.indexOf(role) >= ranks.indexOf(needed))
}

// Session is who looks at the page.
export class Session {
  me = $state.raw<Me | null>(null)
  signedOut = $state(false)
  failure = $state('') // why it is not known who looks

  // begin asks who looks; without a key where one is needed, the page asks for it.
  async begin(): Promise<boolean> {
    this.failure = ''
    try {
      this.me = await api.me()
      this.signedOut = false
      return true
    } catch (err) {
      if (err instanceof Refusal && err.status === 401) this.signedOut = true
      else this.failure = err instanceof Error ? err.message : String(err)
      return false
    }
  }

  async signIn(key: string) {
    this.me = await api.signIn(key)
    this.signedOut = false
  }

  async signOut() {
    await api.signOut()
    this.me = null
    this.signedOut = true
  }

  // may says whether the one who looks can do what needs a role, to an app if one is named.
  may(needed: Role, app?: string): boolean {
    const me = this.me
    if (!me || !covers(me.role, needed)) return false
    return app === undefined || !me.apps || me.apps.length === 0 || me.apps.includes(app)
  }

  // why says why something cannot be done, or nothing.
  why(needed: Role, app?: string): string {
    if (this.may(needed, app)) return ''
    return `This needs a key of the role ${needed}${app !== undefined && covers(this.me?.role ?? 'query', needed) ? ` for ${app}` : ''}.`
  }
}
