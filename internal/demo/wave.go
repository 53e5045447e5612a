// Package demo is the main task of Sluice on real input: a wave of payments that fall due in the
// same second. Workers post them into a ledger, in the transactions that complete their jobs.
// Faults are built in, and a check by SQL proves that no money was lost or made.
//
// Begin with [Wave], which writes the payments, [NewWorker], which posts them, and [Ledger], whose
// Check reads the books. [CheckPace] and [CheckTiers] prove that the limits held.
//
// Read next: docs/examples, and the command `sluice demo` in package cli.
package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Payment is the payload of a job.
type Payment struct {
	ID       string `json:"payment_id"`
	Payer    string `json:"payer"`
	Payee    string `json:"payee"`
	Cents    int64  `json:"cents"`
	Currency string `json:"currency"`
	Purpose  string `json:"purpose"`
	// Bank is the bank's answer; see the constants.
	Bank string `json:"bank"`
}

// The answers of a payment's bank.
const (
	BankWell        = "well"
	BankSlowOnce    = "times out once"
	BankSlowTwice   = "times out twice"
	BankUnreachable = "never answers"
	BankClosed      = "says that the account is closed"
)

// maxCents keeps the sum of all payments from overflowing.
const maxCents = 1 << 40

// Check returns an error for a payment that cannot be posted.
func (p Payment) Check() error {
	for _, text := range []struct{ name, value string }{{"payment_id", p.ID}, {"payer", p.Payer}, {"payee", p.Payee}} {
		if text.value == "" {
			return &sluice.InvalidError{Field: "payload", Rule: text.name + " is missing"}
		}
	}
	if p.Cents < 1 || p.Cents > maxCents {
		return &sluice.InvalidError{Field: "payload", Rule: fmt.Sprintf("cents: %d must be from 1 to %d", p.Cents, int64(maxCents))}
	}
	return nil
}

// Prepare turns a job of a file of payments into a job of the demo: in its queue, with the
// payment's id as key. Options that could end the job in another way than posted or dead are
// dropped.
func Prepare(job *sluice.NewJob, queue string) error {
	if len(job.Payload) == 0 {
		return &sluice.InvalidError{Field: "payload", Rule: "it is missing"}
	}
	var p Payment
	if err := json.Unmarshal(job.Payload, &p); err != nil {
		return &sluice.InvalidError{Field: "payload", Rule: "it is not a payment: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	if err := p.Check(); err != nil {
		return err
	}
	options := sluice.EnqueueOptions{
		Tenant: job.Tenant, Key: p.ID, DueAt: job.DueAt, Delay: job.Delay, Priority: job.Priority,
		Labels: job.Labels, MaxAttempts: job.MaxAttempts, Timeout: job.Timeout, LimitKey: job.LimitKey, Cost: job.Cost,
	}
	payload, err := json.Marshal(p) // SQL would read names with other capitals, or repeated names, differently
	*job = sluice.NewJob{Queue: queue, Payload: payload, EnqueueOptions: options}
	return err
}

// Wave describes a wave of payments to generate.
type Wave struct {
	// Payments and Tenants are the numbers of payments and tenants.
	Payments int
	Tenants  int
	// Seed is the seed of all random choices: the same seed makes the same wave.
	Seed uint64
	// DueAt is the due time of all payments.
	DueAt time.Time
}

// line is a payment as a line of the file that `sluice enqueue QUEUE --file FILE` reads.
type line struct {
	Tenant  string    `json:"tenant"`
	Key     string    `json:"key"`
	DueAt   time.Time `json:"due_at"`
	Payload Payment   `json:"payload"`
}

// Write writes the wave, one job per line, about 1 KB each.
func (v Wave) Write(w io.Writer) error {
	random := rand.New(rand.NewPCG(v.Seed, 4))
	out := bufio.NewWriterSize(w, 1<<20)
	encoder := json.NewEncoder(out)
	for n := range v.Payments {
		tenant := fmt.Sprintf("tenant-%03d", random.IntN(v.Tenants)+1)
		payment := v.payment(random, n, tenant)
		if err := encoder.Encode(line{tenant, payment.ID, v.DueAt.UTC(), payment}); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (v Wave) payment(random *rand.Rand, n int, tenant string) Payment {
	return Payment{
		ID:       fmt.Sprintf("pay-%d-%06d", v.Seed, n+1),
		Payer:    fmt.Sprintf("%s/account-%02d", tenant, random.IntN(20)+1),
		Payee:    fmt.Sprintf("merchant-%04d", random.IntN(2000)+1),
		Cents:    int64(random.ExpFloat64()*8000) + 1,
		Currency: "EUR",
		Purpose:  purpose(random),
		Bank:     bank(random),
	}
}

// bank chooses an answer; most are good.
func bank(random *rand.Rand) string {
	switch roll := random.IntN(1000); {
	case roll < 40:
		return BankSlowOnce
	case roll < 50:
		return BankSlowTwice
	case roll < 52:
		return BankUnreachable
	case roll < 55:
		return BankClosed
	}
	return BankWell
}

var words = strings.Fields(`invoice order delivery contract number customer service month rent repair licence subscription
goods freight insurance deposit settlement account reference project phase advance balance refund discount material
travel office energy water maintenance consulting training hosting support printing catering courier`)

// purpose makes a text that brings a payment to about 1 KB.
func purpose(random *rand.Rand) string {
	var text strings.Builder
	for text.Len() < 720 {
		fmt.Fprintf(&text, "%s %d ", words[random.IntN(len(words))], random.IntN(100_000))
	}
	return strings.TrimSpace(text.String())
}
