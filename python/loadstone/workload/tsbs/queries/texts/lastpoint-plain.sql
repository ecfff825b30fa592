SELECT DISTINCT ON (hostname) * FROM cpu ORDER BY hostname, time DESC
