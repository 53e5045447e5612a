package saving

import (
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// KeyClosed returns the audit entry about a key of a limit that was closed until an instant, or opened.
func KeyClosed(name, key string, until time.Time, act sluice.Act) sluice.AuditEntry {
	event := audit.EventOpenKey
	if !until.IsZero() {
		event = audit.EventCloseKey
	}
	text, err := json.Marshal(struct {
		Key   string    `json:"key"`
		Until time.Time `json:"until,omitzero"`
	}{key, until.UTC()})
	if err != nil {
		text = nil // a year that JSON has no instants for
	}
	return sluice.AuditEntry{Object: audit.ObjectLimit, Name: name, Event: event, After: text, Actor: act.By, Reason: act.Reason, ActID: act.ID}
}
