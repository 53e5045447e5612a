package sluice

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"
)

// Holder is a process that claims jobs or tends them, as it last told the store.
type Holder struct {
	// ID is host:pid:nonce.
	ID string `json:"id"`
	// Role is worker or upkeep.
	Role    string    `json:"role"`
	Queues  []string  `json:"queues,omitempty"`
	Slots   int       `json:"slots,omitempty"`
	Busy    int       `json:"busy"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`
}

// NewHolderID names a process among all that claim or tend jobs: host:pid:nonce (C-21).
func NewHolderID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails: crypto/rand ends the program instead
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), hex.EncodeToString(nonce[:]))
}
