package predict

// Stopped says for each app whose policy tries versions why it has taken some of them
// back, as far as this gateway knows; empty: it has not.
func (p *Predictor) Stopped() map[string]string {
	apps := p.apps.Load()
	if apps == nil {
		return nil
	}
	why := map[string]string{}
	for name, a := range *apps {
		if a.tallies != nil && a.learned != nil {
			why[name] = p.states.Get(a.learned, "", "").Note
		}
	}
	return why
}
