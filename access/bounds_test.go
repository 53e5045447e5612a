package access_test

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

// TestAnEmptyListIsNoBound checks bounds that a program may have made of nothing: taken as no bound, they would open everything.
func TestAnEmptyListIsNoBound(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]access.Bounds{"queues": {Queues: []string{}}, "tenants": {Queues: []string{"mail"}, Tenants: []string{}}} {
		var invalid *sluice.InvalidError
		if err := b.Check(); !errors.As(err, &invalid) || invalid.Field != name {
			t.Errorf("an empty list of %s: %v, want it refused", name, err)
		}
	}
	if err := (access.Bounds{}).Check(); err != nil {
		t.Errorf("no bounds: %v", err)
	}
}
