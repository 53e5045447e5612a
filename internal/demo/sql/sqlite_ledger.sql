-- The ledger of the demo. Nothing in it keeps a payment from being posted twice: that is what the demo proves.
create table if not exists demo_ledger (
    entry      integer primary key,
    queue      text    not null,
    payment_id text    not null,
    account    text    not null,
    cents      integer not null
)
