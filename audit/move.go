package audit

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// Successor makes the first seal of a store into which another store was moved; last is the last seal of the
// other store. The retention stays the same, and an entry records the store and the head that the chain
// continues. Moved entries are sealed anew, because each store writes JSON in its own way. now is the clock of
// the moving process; act names its user and reason.
func Successor(last Seal, from string, now time.Time, act sluice.Act) (Addition, error) {
	s := next(Seal{}, now)
	for _, level := range Levels() {
		s.Part(level).Keep = last.Part(level).Keep
	}
	s.Hash = s.seal()
	after, err := json.Marshal(struct {
		From string `json:"from"`
		Head Head   `json:"head"`
		Upto int64  `json:"upto"`
	}{from, last.Head(), last.Upto})
	if err != nil {
		return Addition{}, fmt.Errorf("tell the audit from where its chain goes on: %w", err)
	}
	return Addition{Seal: s, Entries: []sluice.AuditEntry{{
		Object: ObjectAudit, Name: "chain", Event: EventContinue, Actor: act.By, Reason: act.Reason, After: after,
	}}}, nil
}
