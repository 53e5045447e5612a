package console

import "time"

// WaitForReadings sets how long a page waits for a reading.
func (c *Console) WaitForReadings(most time.Duration) { c.patience = most }

// SaveAtMost bounds the files of all that match.
func (c *Console) SaveAtMost(jobs int) { c.mostSaved = jobs }

// RoutesOfReasons maps the acts that ask for a reason to the routes that get it.
func RoutesOfReasons() map[string]string {
	routes := make(map[string]string)
	for _, a := range acts() {
		if !a.noReason {
			routes[a.name] = a.route
		}
	}
	return routes
}
