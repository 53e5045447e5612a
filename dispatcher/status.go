package dispatcher

import (
	"time"

	"github.com/sluice-queue/sluice/presence"
)

// noteBeat notes that the store accepted a heartbeat.
func (d *Dispatcher) noteBeat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beaten = time.Now()
}

// Status returns the state of the dispatcher. Status does not read the store, and any goroutine may call it at
// any time.
func (d *Dispatcher) Status() presence.Status {
	conditions := d.conditions()
	d.mu.Lock()
	defer d.mu.Unlock()
	return presence.Status{Holder: d.holder.ID, Heartbeat: d.beaten, Conditions: conditions}
}
