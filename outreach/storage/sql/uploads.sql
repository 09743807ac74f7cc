-- Files that are uploaded in chunks.

-- list --
-- Those of a workspace: at most ten that have not expired, and all of them are read.
SELECT {uploads} FROM uploads WHERE workspace_id = :workspace_id ORDER BY created_at, id

-- add_chunk --
-- At once: a chunk is too large to be kept in memory.
INSERT INTO upload_chunks (workspace_id, upload_id, start_byte, content)
VALUES (:workspace_id, :upload_id, :start_byte, :content)

-- chunk --
-- The next piece of a file.
SELECT content FROM upload_chunks
WHERE workspace_id = :workspace_id AND upload_id = :upload_id AND start_byte = :start_byte

-- sweep_chunks --
-- Of expired uploads, in slices.
DELETE FROM upload_chunks WHERE {row} {in}
    SELECT upload_chunks.{row}
    FROM uploads
    {join} upload_chunks ON upload_chunks.workspace_id = uploads.workspace_id AND upload_chunks.upload_id = uploads.id
    WHERE uploads.expires_at <= :now
    LIMIT :limit
{end}

-- sweep --
-- Expired uploads without chunks, the first to expire first.
DELETE FROM uploads WHERE {row} {in}
    SELECT {row} FROM uploads
    WHERE expires_at <= :now AND NOT EXISTS (
        SELECT 1 FROM upload_chunks
        WHERE upload_chunks.workspace_id = uploads.workspace_id AND upload_chunks.upload_id = uploads.id
    )
    ORDER BY expires_at
    LIMIT :limit
{end}
