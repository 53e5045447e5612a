package dispatcher

import (
	"time"

	"github.com/sluice-queue/sluice"
)

// noteBeat notes that the store took a heartbeat.
func (d *Dispatcher) noteBeat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beaten = time.Now()
}

// Status tells how the dispatcher does. It may be asked at any time, and does not read the store.
func (d *Dispatcher) Status() sluice.HolderStatus {
	conditions := d.conditions()
	d.mu.Lock()
	defer d.mu.Unlock()
	return sluice.HolderStatus{Holder: d.holder.ID, Beaten: d.beaten, Conditions: conditions}
}
