SELECT {tag_as:t.name}, {tag_as:t.driver}, r.*
		FROM tags t INNER JOIN LATERAL
			(SELECT longitude, latitude
			FROM readings r
			WHERE r.tags_id=t.id
			ORDER BY time DESC LIMIT 1)  r ON true
		WHERE {tag:t.name} IS NOT NULL
		AND {tag:t.fleet} = '{fleet}'
