package main

import (
	"testing"

	"github.com/sluice-queue/sluice/apps/apptest"
)

func TestProofsOfTheReadmeExist(t *testing.T) {
	t.Parallel()
	apptest.ProofsExist(t, "../..", ".")
}
