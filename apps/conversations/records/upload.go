package records

import (
	"context"
	"database/sql"
	_ "embed"
)

//go:embed sql/upload_find.sql
var uploadFindSQL string

//go:embed sql/upload_ipfs.sql
var uploadIPFSSQL string

//go:embed sql/upload_nonce.sql
var uploadNonceSQL string

//go:embed sql/upload_signed.sql
var uploadSignedSQL string

//go:embed sql/upload_before.sql
var uploadBeforeSQL string

//go:embed sql/upload_confirmed.sql
var uploadConfirmedSQL string

// The statuses of an upload, in their order.
const (
	InIPFS    = "ipfs_uploaded"
	Signed    = "tx_signed"
	Confirmed = "confirmed"
)

// Upload is how far the upload of a learning is. The zero value: not begun.
type Upload struct {
	Status string
	CID    string
	Nonce  uint64
	TxHash string
	// RawTx is the signed transaction. It may be sent any number of times: a chain takes it once.
	RawTx []byte
}

// Upload looks up how far the upload of a learning is.
func (d *Database) Upload(ctx context.Context, learning string) (Upload, error) {
	u, _, err := one(ctx, d.Store.DB(), func(rows *sql.Rows, u *Upload) error {
		return rows.Scan(&u.Status, &u.CID, &u.Nonce, &u.TxHash, &u.RawTx)
	}, uploadFindSQL, learning)
	return u, err
}

// MarkInIPFS stores that a learning is in IPFS.
func (tx Tx) MarkInIPFS(ctx context.Context, learning, cid string) error {
	_, err := tx.ExecContext(ctx, uploadIPFSSQL, learning, cid, tx.micros())
	return err
}

// NextNonce gives the nonce behind the last one that an account has used here.
func (tx Tx) NextNonce(ctx context.Context, account string) (uint64, error) {
	next, _, err := one(ctx, tx, func(rows *sql.Rows, row *uint64) error { return rows.Scan(row) }, uploadNonceSQL, account)
	return next, err
}

// MarkSigned stores a signed transaction, before it is sent. It reports false if the upload is not at that point.
func (tx Tx) MarkSigned(ctx context.Context, learning, account string, u Upload) (bool, error) {
	return changed(ctx, tx, uploadSignedSQL, learning, account, int64(u.Nonce), u.TxHash, u.RawTx, tx.micros())
}

// SignedBefore lists transactions of an account, from one nonce on to before another, that may not have arrived.
func (d *Database) SignedBefore(ctx context.Context, account string, from, before uint64, limit int) ([][]byte, error) {
	return list(ctx, d.Store.DB(), func(rows *sql.Rows, raw *[]byte) error { return rows.Scan(raw) }, uploadBeforeSQL, account, int64(from), int64(before), limit)
}

// MarkConfirmed stores that the chain has the transaction. It reports false if that was known.
func (tx Tx) MarkConfirmed(ctx context.Context, learning string, block uint64) (bool, error) {
	return changed(ctx, tx, uploadConfirmedSQL, learning, int64(block), tx.micros())
}
