SELECT {tag_as:t.name}, {tag_as:t.driver}, r.longitude, r.latitude
		FROM tags t INNER JOIN readings r ON r.tags_id = t.id
			AND r.time = (SELECT max(l.time) FROM readings l WHERE l.tags_id = t.id)
		WHERE {tag:t.name} IS NOT NULL
		AND {tag:t.fleet} = '{fleet}'
