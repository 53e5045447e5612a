package sqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-queue/sluice"
)

// full is the error of a driver on a full disk.
type full struct{}

func (full) Error() string { return "database or disk is full" }
func (full) Code() int     { return codeFull }

func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	err := typed(fmt.Errorf("write: %w", full{}))
	if !errors.Is(err, sluice.ErrDiskFull) || !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("a full disk is told as %v", err)
	}
}
