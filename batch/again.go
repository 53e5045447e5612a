package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// checkAgain returns a [sluice.ErrInvalid] if a stored batch is another one than the given one. An open that is sent again
// finds its own batch.
func (b Batch) checkAgain(given Batch) error {
	var other []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"name", b.Name == given.Name},
		{"parent", b.Parent == given.Parent},
		{"on_" + eventComplete, b.OnComplete.same(given.OnComplete)},
		{"on_" + eventSuccess, b.OnSuccess.same(given.OnSuccess)},
		{"on_" + eventDeath, b.OnDeath.same(given.OnDeath)},
	} {
		if !part.same {
			other = append(other, part.name)
		}
	}
	if len(other) == 0 {
		return nil
	}
	return feature.Invalid("id", fmt.Sprintf("batch %s is stored with another %s; open it as it is stored, or open a new one without the id", b.ID, strings.Join(other, ", ")))
}

// same reports whether two callbacks enqueue the same job.
func (c *Callback) same(other *Callback) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Queue == other.Queue && c.Tenant == other.Tenant && c.priority() == other.priority() && samePayload(c.Payload, other.Payload)
}

// priority returns the priority of the job.
func (c *Callback) priority() int {
	if c.Priority == 0 {
		return sluice.DefaultPriority
	}
	return c.Priority
}

// samePayload reports whether two texts are the same JSON, whatever their blanks and the order of their fields. Blank texts
// are the default payload.
func samePayload(one, other json.RawMessage) bool {
	return bytes.Equal(feature.SortedJSON(bytes.TrimSpace(one)), feature.SortedJSON(bytes.TrimSpace(other)))
}
