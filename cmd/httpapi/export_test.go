package httpapi

import "time"

// ForgetStreams forgets what nobody follows any more, as a server does a while after the last has left.
func (a *API) ForgetStreams() {
	a.collector.mu.Lock()
	defer a.collector.mu.Unlock()
	a.collector.tidy(time.Now().Add(a.collector.keep))
}
