package audit

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// Successor makes the first seal of a store to which another one was moved, whose last seal is given. It keeps entries for
// as long, and its entry tells from which head of which store the chain goes on. The entries that were moved are sealed
// anew, because stores write JSON each in its own way. Now is the clock of who moves, and by is who that is.
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
		Object: sluice.ObjectAudit, Name: "chain", Event: sluice.EventContinue, Actor: act.By, Reason: act.Reason, After: after,
	}}}, nil
}
