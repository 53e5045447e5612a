package dispatcher

import (
	"time"

	"github.com/sluice-queue/sluice"
)

// noteBeat notes that the store accepted a heartbeat.
func (d *Dispatcher) noteBeat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beaten = time.Now()
}

// Status returns the state of the dispatcher. Status does not read the store, and any goroutine may call it at
// any time.
func (d *Dispatcher) Status() sluice.HolderStatus {
	conditions := d.conditions()
	d.mu.Lock()
	defer d.mu.Unlock()
	return sluice.HolderStatus{Holder: d.holder.ID, Beaten: d.beaten, Conditions: conditions}
}
